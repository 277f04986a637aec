moesim profile models llada2.0-mimi
