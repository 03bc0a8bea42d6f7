"""Retrievers for frameworks, and a server for agents. Each needs an extra: langchain, llama-index, haystack or mcp."""
