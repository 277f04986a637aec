moesim profile models deepseek-v3 --format json
