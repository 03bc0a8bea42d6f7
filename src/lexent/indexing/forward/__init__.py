"""Forward indexes: what a segment keeps for each document beside the posting lists."""
