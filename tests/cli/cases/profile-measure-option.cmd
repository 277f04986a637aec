moesim profile measure --devise host
