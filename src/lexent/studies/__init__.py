"""Studies of a collection: are codes, explanations and names true, and do the papers' tables hold?"""
