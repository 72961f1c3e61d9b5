"""The plugin host: objectives and solvers are found through hooks and in no other way. Templates of new plugins."""
