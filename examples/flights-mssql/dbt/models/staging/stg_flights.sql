select
    flight_id,
    datefromparts(year, month, day) as flight_date,
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
    cast(case when dep_time is null then 1 else 0 end as bit) as cancelled
from {{ source('stage', 'flights') }}
