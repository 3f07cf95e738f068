select
    origin,
    dest,
    cast(count(*) as integer) as flights,
    cast(count(distinct carrier) as integer) as carriers,
    cast(avg(distance) as numeric(8, 2)) as miles
from {{ ref('stg_flights') }}
where not cancelled
group by origin, dest
