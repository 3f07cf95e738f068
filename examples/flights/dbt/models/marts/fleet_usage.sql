select
    planes.tailnum,
    planes.manufacturer,
    planes.model,
    planes.year as built_in,
    planes.seats,
    cast(count(*) as integer) as flights,
    cast(count(distinct flights.carrier) as integer) as carriers,
    min(flights.flight_date) as first_flight,
    max(flights.flight_date) as last_flight,
    cast(sum(flights.distance) as bigint) as miles,
    cast(coalesce(sum(flights.air_time), 0) / 60.0 as numeric(10, 2)) as hours_in_air
from {{ ref('stg_flights') }} as flights
inner join {{ source('stage', 'planes') }} as planes
    on planes.tailnum = flights.tailnum
where not flights.cancelled
group by planes.tailnum, planes.manufacturer, planes.model, planes.year, planes.seats
