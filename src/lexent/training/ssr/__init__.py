"""Codes that learn to retrieve by MaxSim (SSR)."""
