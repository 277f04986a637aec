moesim profile models --format csv
