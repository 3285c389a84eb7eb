# SPDX-License-Identifier: MIT
# libsqlite3 under its shell, which reads one wide script.
module libsqlite3

run -i "$HERE/sqlite.sql" -t 1800 -m END-OF-RUN script sqlite3 one.db
