moesim profile models GPT-OSS-20b --dtype mxfp4
