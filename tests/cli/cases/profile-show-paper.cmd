moesim profile show paper-b
