select
    origin,
    dest,
    count(*) as flights,
    count(distinct carrier) as carriers,
    cast(avg(cast(distance as decimal(19, 9))) as decimal(8, 2)) as miles
from {{ ref('stg_flights') }}
where cancelled = 0
group by origin, dest
