moesim profile show ./none.json
