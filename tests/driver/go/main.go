// Reads, ingests, binds, fails and runs out of time through Go's driver manager: `driver LIBRARY URL TABLE QUERY [OPTION VALUE]...`,
// where the options are those of the statement that reads.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/apache/arrow-adbc/go/adbc"
	"github.com/apache/arrow-adbc/go/adbc/drivermgr"
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

func check(err error) {
	if err != nil {
		panic(err)
	}
}

// rows reads a result to its end, and returns the number of rows and the sum of its first column, where that is one of int64.
func rows(connection adbc.Connection, query string, values arrow.Record, options ...string) (count int64, sum int64) {
	statement, err := connection.NewStatement()
	check(err)
	defer statement.Close()
	for at := 0; at+1 < len(options); at += 2 {
		check(statement.SetOption(options[at], options[at+1]))
	}
	check(statement.SetSqlQuery(query))
	if values != nil {
		check(statement.Bind(context.Background(), values))
	}
	reader, _, err := statement.ExecuteQuery(context.Background())
	check(err)
	defer reader.Release()
	for reader.Next() {
		batch := reader.Record()
		count += batch.NumRows()
		if numbers, ok := batch.Column(0).(*array.Int64); ok {
			for _, number := range numbers.Int64Values() {
				sum += number
			}
		}
	}
	check(reader.Err())
	return count, sum
}

func record(numbers ...int64) arrow.Record {
	schema := arrow.NewSchema([]arrow.Field{{Name: "id", Type: arrow.PrimitiveTypes.Int64}}, nil)
	builder := array.NewRecordBuilder(memory.DefaultAllocator, schema)
	defer builder.Release()
	builder.Field(0).(*array.Int64Builder).AppendValues(numbers, nil)
	return builder.NewRecord()
}

func main() {
	library, url, table, query := os.Args[1], os.Args[2], os.Args[3], os.Args[4]
	database, err := drivermgr.Driver{}.NewDatabase(map[string]string{"driver": library, "entrypoint": "AdbcDriverInit", "uri": url})
	check(err)
	defer database.Close()
	connection, err := database.Open(context.Background())
	check(err)
	defer connection.Close()

	began := time.Now()
	count, _ := rows(connection, query, nil, os.Args[5:]...)
	fmt.Fprintf(os.Stderr, "seconds %f\n", time.Since(began).Seconds())
	fmt.Println("read", count)
	if table == "-" {
		return
	}

	statement, err := connection.NewStatement()
	check(err)
	check(statement.SetOption(adbc.OptionKeyIngestTargetTable, table))
	check(statement.SetOption(adbc.OptionKeyIngestMode, adbc.OptionValueIngestModeCreate))
	check(statement.Bind(context.Background(), record(1, 2, 3)))
	ingested, err := statement.ExecuteUpdate(context.Background())
	check(err)
	check(statement.Close())
	fmt.Println("ingested", ingested)

	count, sum := rows(connection, "SELECT id FROM "+table+" WHERE id > $1", record(1))
	fmt.Println("bound", count, sum)

	fails(connection, "SELECT * FROM no_such_table")
	// The manager has no call that cancels, and looks at no context.
	check(connection.(adbc.PostInitOptions).SetOption(adbc.OptionKeyAutoCommit, adbc.OptionValueEnabled))
	fails(connection, "SELECT pg_sleep(60)", "longshore.timeout", "0.2")
}

func fails(connection adbc.Connection, query string, options ...string) {
	statement, err := connection.NewStatement()
	check(err)
	defer statement.Close()
	for at := 0; at+1 < len(options); at += 2 {
		check(statement.SetOption(options[at], options[at+1]))
	}
	check(statement.SetSqlQuery(query))
	_, err = statement.ExecuteUpdate(context.Background())
	var failure adbc.Error
	if !errors.As(err, &failure) {
		panic("it did not fail")
	}
	state := make([]byte, len(failure.SqlState))
	for at, character := range failure.SqlState {
		state[at] = byte(character)
	}
	fmt.Println("failed", failure.Code, strings.Trim(string(state), "\x00"))
}
