"""The mechanism of all results: one reader, intervals, charts, pictures, tables. Studies say what is done with it."""
