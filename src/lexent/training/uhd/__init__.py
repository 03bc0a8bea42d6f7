"""Winner-take-all units that learn together with their encoder (UHD)."""
