"""The command line: `dlopt` reads, checks, changes and runs IR; `dlc` compiles it to object code.

Read `command` (files in and out, errors as messages), then `dlopt` and `dlc`, which read the options and load the
rest: `modules` (text and what stands in it), `optimize` (passes and stages), `call` and `native` (running a
function), `build` (object code).
"""
