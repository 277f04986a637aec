moesim profile show h200-host --format json | sed 's/0.000195, 0.000231/0.000195, 0.000191/' > a.json; moesim profile show a.json | sed -n '/^CPU/,/^$/p'
