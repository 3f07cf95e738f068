select
    planes.tailnum,
    planes.manufacturer,
    planes.model,
    planes.year as built_in,
    planes.seats,
    count(*) as flights,
    count(distinct flights.carrier) as carriers,
    min(flights.flight_date) as first_flight,
    max(flights.flight_date) as last_flight,
    sum(cast(flights.distance as bigint)) as miles,
    cast(coalesce(sum(flights.air_time), 0) / 60.0 as decimal(10, 2)) as hours_in_air
from {{ ref('stg_flights') }} as flights
inner join {{ source('stage', 'planes') }} as planes
    on planes.tailnum = flights.tailnum
where flights.cancelled = 0
group by planes.tailnum, planes.manufacturer, planes.model, planes.year, planes.seats
