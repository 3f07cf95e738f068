select
    flight_date,
    carrier,
    count(*) as flights,
    sum(case when cancelled = 1 then 1 else 0 end) as cancelled_flights,
    -- avg() of whole numbers is a whole number here; nine digits are more than the marts keep.
    cast(avg(cast(dep_delay as decimal(19, 9))) as decimal(8, 2)) as mean_departure_delay,
    cast(avg(cast(arr_delay as decimal(19, 9))) as decimal(8, 2)) as mean_arrival_delay,
    cast(max(arr_delay) as int) as worst_arrival_delay,
    -- On time as the Bureau of Transportation Statistics counts: less than a quarter of an hour late.
    cast(
        avg(cast(case when arr_delay < 15 then 1 when arr_delay >= 15 then 0 end as decimal(19, 9))) as decimal(5, 4)
    ) as share_on_time
from {{ ref('stg_flights') }}
group by flight_date, carrier
