"""ODBC without another library: the driver manager by ``ctypes``, columns and parameters by NumPy and Arrow."""
