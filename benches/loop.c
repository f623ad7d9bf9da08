/* Steps through a query and reads every column, and does nothing else: what no client can spare.
   loop FILE QUERY prints seconds of the clock, seconds of the processor, rows. */
#include <sqlite3.h>
#include <stdio.h>
#include <time.h>

static double seconds(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return now.tv_sec + now.tv_nsec / 1e9;
}

int main(int count, char **arguments)
{
    sqlite3 *connection;
    sqlite3_stmt *statement;
    volatile double sum = 0;
    long rows = 0;
    int code;
    if (count != 3)
        return 2;
    double wall = seconds(CLOCK_MONOTONIC), cpu = seconds(CLOCK_PROCESS_CPUTIME_ID);
    if (sqlite3_open_v2(arguments[1], &connection, SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX, NULL) != SQLITE_OK ||
        sqlite3_prepare_v2(connection, arguments[2], -1, &statement, NULL) != SQLITE_OK)
        return 1;
    int columns = sqlite3_column_count(statement);
    while ((code = sqlite3_step(statement)) == SQLITE_ROW) {
        rows++;
        for (int column = 0; column < columns; column++)
            switch (sqlite3_column_type(statement, column)) {
            case SQLITE_INTEGER:
                sum += sqlite3_column_int64(statement, column);
                break;
            case SQLITE_FLOAT:
                sum += sqlite3_column_double(statement, column);
                break;
            case SQLITE_TEXT:
                sum += sqlite3_column_text(statement, column)[0] + sqlite3_column_bytes(statement, column);
                break;
            default:
                break;
            }
    }
    if (code != SQLITE_DONE)
        return 1;
    printf("%.6f %.6f %ld\n", seconds(CLOCK_MONOTONIC) - wall, seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu, rows);
    return 0;
}
