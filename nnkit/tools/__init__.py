"""The command line: `dlopt` reads, checks, changes and runs IR; `dlc` compiles it to object code.

Read `command` (options, errors as messages) and `files` (in and out), then `dlopt` and `dlc`, which load the rest:
`modules` (text and what stands in it), `optimize`, `passes` and `statistics` (passes and stages), `call`
(running a function) with `arguments`, `native`, `agreement` and `results`, and `build` (object code).
"""
