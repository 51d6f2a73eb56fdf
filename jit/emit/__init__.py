"""LLVM IR as text: `values` (types, registers, constants), `instructions`, `writer`, and `math`."""
