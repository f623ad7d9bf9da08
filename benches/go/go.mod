module longshore.test/rows

go 1.23.0
