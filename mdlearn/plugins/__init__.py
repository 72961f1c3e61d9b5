"""Hook specifications and the registry: objectives and solvers are found through hooks and in no other way."""
