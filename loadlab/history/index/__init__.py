"""results/index.html: all runs, and each cell over time."""
