/* Reads, ingests, binds, fails and is cancelled through the driver itself: `driver LIBRARY URL TABLE COMPUTING`. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "arrow-adbc/adbc.h"

static struct AdbcDriver driver;
static struct AdbcError error = ADBC_ERROR_INIT;

static void check(AdbcStatusCode status) {
  if (status == ADBC_STATUS_OK) return;
  fprintf(stderr, "status %d: %s\n", status, error.message ? error.message : "");
  exit(1);
}

static void told(const char* what, AdbcStatusCode status, struct AdbcError* failure) {
  printf("%s %d %.5s %s\n", what, status, failure->sqlstate, failure->message ? "with text" : "without text");
  for (int at = 0; at < driver.ErrorGetDetailCount(failure); at++) {
    struct AdbcErrorDetail detail = driver.ErrorGetDetail(failure, at);
    printf("detail %s\n", detail.key);
  }
}

static void end(void) {
  if (error.release) error.release(&error);
  error = (struct AdbcError)ADBC_ERROR_INIT;
}

/* The rows of a result; what ends it, where it fails. */
static long rows(struct ArrowArrayStream* stream) {
  struct ArrowArray array;
  long count = 0;
  int code;
  while ((code = stream->get_next(stream, &array)) == 0 && array.release) {
    count += array.length;
    array.release(&array);
  }
  if (code != 0) {
    AdbcStatusCode status = 0;
    struct AdbcError* failure = (struct AdbcError*)driver.ErrorFromArrayStream(stream, &status);
    told("stream failed", status, failure);
  }
  stream->release(stream);
  return count;
}

static struct AdbcStatement statement;

static void* cancel(void* seconds) {
  usleep(500000);
  struct AdbcError own = ADBC_ERROR_INIT;
  if (driver.StatementCancel(&statement, &own) != ADBC_STATUS_OK) exit(2);
  return seconds;
}

/* One column of one integer, whose memory is static. */
static void nothing_of_schema(struct ArrowSchema* schema) { schema->release = NULL; }
static void nothing_of_array(struct ArrowArray* array) { array->release = NULL; }

static void bind(int64_t* value) {
  static struct ArrowSchema column = {.format = "l", .name = "id", .flags = ARROW_FLAG_NULLABLE};
  static struct ArrowSchema* columns[] = {&column};
  static struct ArrowArray values = {.length = 1, .n_buffers = 2};
  static struct ArrowArray* children[] = {&values};
  static const void* buffers[2];
  static const void* none[1];
  buffers[1] = value;
  values.buffers = buffers;
  column.release = nothing_of_schema;
  values.release = nothing_of_array;
  struct ArrowSchema schema = {.format = "+s", .n_children = 1, .children = columns, .release = nothing_of_schema};
  struct ArrowArray array = {
      .length = 1, .n_buffers = 1, .n_children = 1, .buffers = none, .children = children, .release = nothing_of_array};
  check(driver.StatementBind(&statement, &array, &schema, &error));
}

/* A schema that counts a child and has none. */
static void bind_hollow(void) {
  static const void* none[1];
  struct ArrowSchema schema = {.format = "+s", .n_children = 1, .release = nothing_of_schema};
  struct ArrowArray array = {.length = 1, .n_buffers = 1, .buffers = none, .release = nothing_of_array};
  told("hollow", driver.StatementBind(&statement, &array, &schema, &error), &error);
  end();
}

int main(int count, char** arguments) {
  if (count != 5) return 2;
  void* library = dlopen(arguments[1], RTLD_NOW);
  AdbcDriverInitFunc init = library ? (AdbcDriverInitFunc)dlsym(library, "AdbcDriverInit") : NULL;
  if (!init) return fprintf(stderr, "%s\n", dlerror()), 1;
  check(init(ADBC_VERSION_1_1_0, &driver, &error));
  struct AdbcDatabase database = {0};
  check(driver.DatabaseNew(&database, &error));
  check(driver.DatabaseSetOption(&database, "uri", arguments[2], &error));
  check(driver.DatabaseInit(&database, &error));
  struct AdbcConnection connection = {0};
  check(driver.ConnectionNew(&connection, &error));
  check(driver.ConnectionInit(&connection, &database, &error));
  check(driver.StatementNew(&connection, &statement, &error));

  struct ArrowArrayStream stream;
  char query[256];
  int64_t changed = 0, seven = 7;
  check(driver.StatementSetOption(&statement, ADBC_INGEST_OPTION_TARGET_TABLE, arguments[3], &error));
  bind(&seven);
  check(driver.StatementExecuteQuery(&statement, NULL, &changed, &error));
  printf("ingested %ld\n", (long)changed);
  bind_hollow();

  snprintf(query, sizeof query, "SELECT * FROM %s WHERE id = $1", arguments[3]);
  check(driver.StatementSetSqlQuery(&statement, query, &error));
  bind(&seven);
  check(driver.StatementExecuteQuery(&statement, &stream, NULL, &error));
  printf("bound %ld\n", rows(&stream));

  check(driver.StatementSetSqlQuery(&statement, "SELECT * FROM no_such_table", &error));
  told("failed", driver.StatementExecuteQuery(&statement, &stream, NULL, &error), &error);
  end();

  check(driver.StatementSetSqlQuery(&statement, "SELECT 1 / (100000 - i) FROM generate_series(1, 200000) AS s (i)", &error));
  check(driver.StatementExecuteQuery(&statement, &stream, NULL, &error));
  printf("came %s\n", rows(&stream) < 200000 ? "in part" : "whole");

  pthread_t thread;
  check(driver.StatementSetSqlQuery(&statement, arguments[4], &error));
  pthread_create(&thread, NULL, cancel, NULL);
  AdbcStatusCode status = driver.StatementExecuteQuery(&statement, &stream, NULL, &error);
  if (status == ADBC_STATUS_OK) rows(&stream); else told("cancelled", status, &error);
  pthread_join(thread, NULL);
  end();

  struct ArrowArrayStream objects;
  check(driver.ConnectionGetObjects(&connection, ADBC_OBJECT_DEPTH_ALL, NULL, NULL, arguments[3], NULL, NULL, &objects, &error));
  printf("catalogs %s\n", rows(&objects) > 0 ? "some" : "none");
  check(driver.StatementRelease(&statement, &error));
  check(driver.ConnectionRelease(&connection, &error));
  check(driver.DatabaseRelease(&database, &error));
  check(driver.release(&driver, &error));
  return 0;
}
