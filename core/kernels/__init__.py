"""Kernels: the explicit loops over buffers that stage schedule ends in, and the rewrites that schedule them.

Read `ops` (what a kernel is made of) and `build`.  Nothing is imported here: the text form and the verifier know the
ops of kernels without loading what makes them.
"""
