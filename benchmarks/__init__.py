"""NNKit beside JAX and PyTorch, measured in one run: `python -m benchmarks` or `make bench`.

Read `problems` (what is computed), one of `workloads_*` (how each library is asked to), `timing`, `worker` and
`process` (how it is measured), `report` (the table).
"""
