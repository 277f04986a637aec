cp -L raw.h5 mine.h5 && moesim profile fit mine.h5 -o ./mine.h5
