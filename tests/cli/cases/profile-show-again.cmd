moesim profile show h200-host --format json > a.json; moesim profile show a.json --format json | grep -v origin > b.json; grep -v origin a.json | cmp - b.json && echo same
