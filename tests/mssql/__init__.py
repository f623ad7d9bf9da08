"""SQL Server, by a server that speaks TDS and answers what the tests have told it to."""
