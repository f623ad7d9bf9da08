// Reads a result row by row with pgx: `rows URL QUERY`.
package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/jackc/pgx/v5"
)

func check(err error) {
	if err != nil {
		panic(err)
	}
}

func main() {
	ctx := context.Background()
	connection, err := pgx.Connect(ctx, os.Args[1])
	check(err)
	defer connection.Close(ctx)
	began, count := time.Now(), 0
	rows, err := connection.Query(ctx, os.Args[2])
	check(err)
	for rows.Next() {
		_, err := rows.Values()
		check(err)
		count++
	}
	check(rows.Err())
	fmt.Fprintf(os.Stderr, "seconds %f\n", time.Since(began).Seconds())
	fmt.Println("read", count)
}
