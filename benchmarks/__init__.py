"""NNKit beside JAX and PyTorch, measured in one run: `python -m benchmarks` or `make bench`.

Read `problems` (what is computed), one of `workloads_*` (how each library is asked to), `timing`, `worker` and
`process` (how it is measured), `limits` (what the machine can do), `report`, `results` and `plot` (what is written).
Ours alone: `ablation` (what each switch is good for), `scale` (how everything grows), and `asymptotics`, `scaling`,
`products` and `runge_kutta`, each one question more closely.
"""
