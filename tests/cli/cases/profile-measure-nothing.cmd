moesim profile measure
