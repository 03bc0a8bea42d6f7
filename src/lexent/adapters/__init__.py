"""Adapters: small networks over a frozen retriever's vectors that improve it and say what they changed."""

from lexent.adapters.adapter import Adapter, AdapterInfo, load, save
from lexent.adapters.config import AdapterConfig, TrainSettings

__all__ = ["Adapter", "AdapterConfig", "AdapterInfo", "TrainSettings", "load", "save"]
