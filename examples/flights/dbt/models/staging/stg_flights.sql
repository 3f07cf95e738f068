select
    flight_id,
    make_date(year, month, day) as flight_date,
    time_hour as scheduled_hour,
    carrier,
    flight as flight_number,
    tailnum,
    origin,
    dest,
    dep_delay,
    arr_delay,
    air_time,
    distance,
    dep_time is null as cancelled
from {{ source('stage', 'flights') }}
