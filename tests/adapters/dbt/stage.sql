-- Tables shaped as the transfers bring them, with a few hundred made-up flights: fixed rows, no randomness.
CREATE SCHEMA stage;
CREATE SCHEMA mart;

CREATE TABLE stage.planes (
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
INSERT INTO stage.planes
SELECT 'N' || 100 + n, CASE WHEN n % 7 = 0 THEN NULL ELSE 1990 + n % 20 END, 'Fixed wing multi engine',
    (ARRAY['BOEING', 'AIRBUS', 'EMBRAER'])[1 + n % 3], '737-' || n % 5, 2, 50 + n % 150, NULL, 'Turbo-fan'
FROM generate_series(1, 40) AS n;

CREATE TABLE stage.flights (
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
);
INSERT INTO stage.flights
SELECT n, 2013, 1 + n % 2, 1 + n % 28,
    CASE WHEN n % 11 = 0 THEN NULL ELSE 600 + n % 600 END, 600 + n % 600,
    CASE WHEN n % 11 = 0 THEN NULL ELSE n % 90 - 15 END,
    CASE WHEN n % 11 = 0 THEN NULL ELSE 900 + n % 600 END, 900 + n % 600,
    CASE WHEN n % 11 = 0 OR n % 37 = 0 THEN NULL ELSE n % 120 - 40 END,
    (ARRAY['UA', 'AA', 'B6', 'DL'])[1 + n % 4], 1000 + n,
    CASE WHEN n % 11 = 0 THEN NULL ELSE 'N' || 100 + n % 45 END,
    (ARRAY['EWR', 'JFK', 'LGA'])[1 + n % 3], (ARRAY['IAH', 'MIA', 'BQN', 'ATL', 'ORD'])[1 + n % 5],
    CASE WHEN n % 11 = 0 THEN NULL ELSE 40 + n % 300 END, 200 + n % 2000, 6 + n % 16, n % 60,
    make_timestamptz(2013, 1 + n % 2, 1 + n % 28, 6 + n % 16, 0, 0, 'America/New_York')
FROM generate_series(1, 600) AS n;
