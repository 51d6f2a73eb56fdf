"""What compiled programs find in the process they run in: `lapack`, `pool`, `process`."""
