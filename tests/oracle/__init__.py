"""Oracle, of which no server can run here: a fake of its driver, and a listener that refuses the real one."""
