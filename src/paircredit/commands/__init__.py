"""Commands that have more to do than to call one function; a file each."""
