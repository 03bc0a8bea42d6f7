"""Adapters: small networks over a frozen retriever's vectors that improve it and say what they changed."""

from lexent.adapters.adapter import Adapter, AdapterInfo
from lexent.adapters.config import AdapterConfig, TrainSettings
from lexent.adapters.files import load, save

__all__ = ["Adapter", "AdapterConfig", "AdapterInfo", "TrainSettings", "load", "save"]
