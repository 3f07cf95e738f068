select
    flight_date,
    carrier,
    cast(count(*) as integer) as flights,
    cast(count(*) filter (where cancelled) as integer) as cancelled_flights,
    cast(avg(dep_delay) as numeric(8, 2)) as mean_departure_delay,
    cast(avg(arr_delay) as numeric(8, 2)) as mean_arrival_delay,
    cast(max(arr_delay) as integer) as worst_arrival_delay,
    -- On time as the Bureau of Transportation Statistics counts: less than a quarter of an hour late.
    cast(avg(case when arr_delay < 15 then 1 when arr_delay >= 15 then 0 end) as numeric(5, 4)) as share_on_time
from {{ ref('stg_flights') }}
group by flight_date, carrier
