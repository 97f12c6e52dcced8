"""The passes, one module and one function `run` each; `servec.pipeline` has their order."""
