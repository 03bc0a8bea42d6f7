"""Query processing kernels: exact top-k over posting lists, and MaxSim over token codes."""
