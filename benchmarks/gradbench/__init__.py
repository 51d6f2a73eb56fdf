"""The tool side of the GradBench protocol (https://gradbench.dev): six problems, differentiated by NNKit.

`python -m benchmarks.gradbench` answers an eval, JSON lines on stdin and stdout.  Read `protocol` (messages and runs),
then a problem: `hello`, `lse`, `gmm`, `lstm`, `kmeans`, `ba`.  Each is a module with `FUNCTIONS`.
`python -m benchmarks.gradbench.times` measures them beside loops in C++ (`cpp/`) and JAX (`workloads_jax`).
"""
