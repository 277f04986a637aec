moesim profile show pcie5-default --format json | sed 's/0.000105, 0.000115/0.000105, 0.000101/' > a.json; moesim profile show a.json | sed -n '/^CPU/,/^$/p'
