/* Steps through a query and reads every column, and does nothing else: what no client can spare. */
#include <sqlite3.h>

/* Its bytes are read, so that a page that was not asked for yet is. */
static volatile double sum;

/* Returns the rows, or a code of SQLite below zero. */
long drain(const char *file, const char *query)
{
    sqlite3 *connection = 0;
    sqlite3_stmt *statement = 0;
    double read = 0;
    long rows = 0;
    int code = sqlite3_open_v2(file, &connection, SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX, 0);
    if (code == SQLITE_OK)
        code = sqlite3_prepare_v2(connection, query, -1, &statement, 0);
    int columns = sqlite3_column_count(statement);
    while (code == SQLITE_OK && (code = sqlite3_step(statement)) == SQLITE_ROW) {
        rows++;
        code = SQLITE_OK;
        for (int column = 0; column < columns; column++)
            switch (sqlite3_column_type(statement, column)) {
            case SQLITE_INTEGER:
                read += sqlite3_column_int64(statement, column);
                break;
            case SQLITE_FLOAT:
                read += sqlite3_column_double(statement, column);
                break;
            case SQLITE_TEXT:
                read += sqlite3_column_text(statement, column)[0] + sqlite3_column_bytes(statement, column);
                break;
            default:
                break;
            }
    }
    sum = read;
    sqlite3_finalize(statement);
    sqlite3_close(connection);
    return code == SQLITE_DONE ? rows : -code;
}
